"""What people do with kubectl, scene by scene: commands that are given to a home and to a real kube-apiserver alike.

Every scene has a namespace of its own on both sides. A line is a command; the files it names are below.
"""

FILES = {
    "map.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: m, labels: {app: x}}
data: {a: "1", b: "2"}
""",
    "map2.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: m, labels: {app: x}}
data: {a: "1", c: "3"}
""",
    "bad-map.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {"a b": "1", "..": "2"}
""",
    "unknown-map.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: u, lables: {a: b}}
dta: {a: "1"}
""",
    "number-map.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: n}
data: {a: 1}
""",
    "pod.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: web, tier: front}}
spec:
  restartPolicy: Never
  containers:
  - name: web
    image: nginx:1.27
    ports: [{containerPort: 80}]
    env: [{name: A, value: b}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v, emptyDir: {}}]
""",
    "two-pods.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: web, n: "1"}}
spec: {containers: [{name: c, image: "busybox:1", command: [sleep, "9"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: web, n: "2"}}
spec: {containers: [{name: c, image: busybox}], nodeSelector: {a: b}}
""",
    "bad-pod.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec: {restartPolicy: Sometimes, containers: [{name: A, image: x}, {name: b}]}
""",
    "empty-pod.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: empty}
spec: {containers: []}
""",
    "typed-pod.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: typed}
spec: {containers: [{name: c, image: x, ports: [{containerPort: http}]}]}
""",
    "generated.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {generateName: g-}
""",
    "service.yaml": """
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 80}, {name: alt, port: 8080, targetPort: 80}]}
""",
    "bad-service.yaml": """
apiVersion: v1
kind: Service
metadata: {name: 1st}
spec: {ports: [{port: 80}, {port: 70000, name: x}]}
""",
    "secret.yaml": """
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {user: me}
data: {pass: cGFzcw==}
""",
    "claim.yaml": """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
""",
    "priority.yaml": """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
description: soon
""",
    "lease.yaml": """
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l}
spec: {holderIdentity: me, leaseDurationSeconds: 15}
""",
    "template.yaml": """
apiVersion: v1
kind: PodTemplate
metadata: {name: t}
template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: busybox}]}}
""",
    "event.yaml": """
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: e}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/me
reportingInstance: me-1
action: Looking
reason: Seen
regarding: {kind: Pod, name: p, namespace: events}
note: it was seen
type: Normal
""",
    "old-event.yaml": """
apiVersion: v1
kind: Event
metadata: {name: o}
involvedObject: {kind: Pod, name: p, namespace: events}
message: it was seen before
reason: Seen
type: Warning
count: 3
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:01:00Z"
source: {component: me}
""",
    "job.yaml": """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, labels: {team: a}}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: torch}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: torch, ports: [{containerPort: 1}]}]}}}
""",
    "job2.yaml": """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, labels: {team: b}}
spec:
  runPolicy: {cleanPodPolicy: All}
  pytorchReplicaSpecs:
    Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: torch}]}}}
""",
    "unsized-job.yaml": """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: u}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: torch}]}}}}}
""",
    "typed-job.yaml": """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t}
spec: {pytorchReplicaSpecs: {Worker: {replicas: many, template: {spec: {containers: [{name: pytorch, image: torch}]}}}}}
""",
    "unknown-job.yaml": """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: x}
spec: {zzz: 1, pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: torch}]}}}}}
""",
    "nothing.yaml": "",
    "broken.yaml": "a: [",
    "no-kind.yaml": "metadata: {name: x}\n",
    "deployment.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n",
}

SCENES: dict[str, str] = {
    "a config map's life": """
create -f map.yaml
create -f map.yaml
get configmaps m
get cm m -o yaml
get cm m -o json
get cm m -o name
get cm m -o wide
get cm/m --show-labels
get cm -l app=x
get cm -l app!=x
get cm -l app in (x,y)
get cm -l !app
get cm m -o jsonpath={.data.a}
get cm m -o jsonpath={range.items[*]}{.metadata.name}
get cm m -o custom-columns=NAME:.metadata.name,A:.data.a,NONE:.x
get cm m -o go-template={{.data.b}}
get cm m -o yaml --show-managed-fields
describe cm m
label cm m tier=front
label cm m tier=back
label cm m tier=back --overwrite
label cm m tier-
label cm m 'bad key=x'
label cm m a=!
annotate cm m note=hello
annotate cm m note-
patch cm m --type=merge -p {"data":{"b":null,"z":"9"}}
patch cm m -p {"data":{"z":"10"}}
patch cm m --type=json -p [{"op":"add","path":"/data/new","value":"x"}]
patch cm m --type=json -p [{"op":"remove","path":"/data/nothing"}]
patch cm m --type=json -p [{"op":"test","path":"/data/new","value":"y"}]
patch cm m --type=merge -p {"data":{"a":5}}
patch cm nosuch --type=merge -p {"data":{}}
replace -f map2.yaml
get cm m -o yaml
delete cm m
delete cm m
delete cm m --ignore-not-found
get cm m
""",
    "applying from the client's side": """
apply -f map.yaml
apply -f map.yaml
apply -f map2.yaml
get cm m -o yaml
diff -f map.yaml
apply -f map.yaml --dry-run=server
apply -f map.yaml --dry-run=client
apply -f map.yaml --dry-run=server -o yaml
apply view-last-applied -f map2.yaml
apply -f nothing.yaml
apply -f broken.yaml
apply -f no-kind.yaml
apply -f deployment.yaml
apply -f nosuch.yaml
delete -f map.yaml
delete -f map.yaml
""",
    "applying from the server's side": """
apply --server-side -f map.yaml
apply --server-side -f map.yaml
get cm m -o yaml --show-managed-fields
apply --server-side -f map2.yaml
get cm m -o yaml --show-managed-fields
apply --server-side --field-manager=other -f map.yaml
patch cm m --type=merge -p {"data":{"c":"changed"}}
apply --server-side -f map2.yaml
apply --server-side -f map2.yaml --dry-run=server
apply --server-side -f map2.yaml --force-conflicts
get cm m -o yaml --show-managed-fields
apply -f map.yaml
apply --server-side -f map2.yaml
get cm m -o yaml --show-managed-fields
apply --server-side -f service.yaml
get service s -o yaml --show-managed-fields
apply --server-side --field-manager=other -f service.yaml
get service s -o yaml --show-managed-fields
""",
    "what is wrong with a manifest": """
create -f bad-map.yaml
create -f unknown-map.yaml
create -f unknown-map.yaml --validate=warn
create -f unknown-map.yaml --validate=false
create -f number-map.yaml
create -f bad-pod.yaml
create -f empty-pod.yaml
create -f typed-pod.yaml
create -f bad-service.yaml
create -f broken.yaml
create -f nothing.yaml
create -f no-kind.yaml
create -f deployment.yaml
create cm x --from-literal=a
create cm x..y --from-literal=a=b
create namespace Bad
create -f map.yaml -n nosuch
get things
get pods -l a===b
get pods --field-selector foo=bar
get pods --field-selector status.phase
""",
    "pods": """
create -f pod.yaml
create -f two-pods.yaml
get pods
get po -o wide
get pods p -o yaml
get pods -o name --sort-by=.metadata.name
get pods --sort-by={.metadata.labels.n}
get pods --chunk-size=1
get pods -l app=web,n!=1
get pods -L app,n
get pods --field-selector status.phase=Pending,metadata.name!=p
get pods --field-selector spec.nodeName=here
get pods -A --field-selector metadata.namespace=pods
get pods --no-headers
get pods -o jsonpath={.items[*].metadata.name}
get pods -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.phase}{"\\n"}{end}'
get pods -o custom-columns=N:.metadata.name,I:.spec.containers[*].image
get pods,cm -o name
get pod/p pod/nosuch
get --raw /api/v1/namespaces/pods/pods/nosuch
describe pod p
describe pod nosuch
label pods --all seen=yes
label pods -l n=1 first=yes
annotate pod p a=b c=d
patch pod p -p {"spec":{"containers":[{"name":"web","image":"nginx:1.28"}]}}
patch pod p -p {"spec":{"restartPolicy":"Always"}}
patch pod p -p {"spec":{"activeDeadlineSeconds":60}}
patch pod p --subresource=status --type=merge -p {"status":{"phase":"Running"}}
get pod p
set image pod/p web=nginx:1.29
get pod p -o yaml
wait --for=jsonpath={.status.phase}=Running pod/p --timeout=5s
wait --for=condition=Ready pod/p --timeout=1s
wait --for=delete pod/nosuch --timeout=1s
wait --for=create pod/p --timeout=1s
logs p -c nosuch
delete pod p --dry-run=server
delete pod p --dry-run=client
delete pod one --grace-period=0 --force
delete pods -l n=2 --wait=false
delete pod p --now
get pods
run r --image=busybox --restart=Never --dry-run=server
run r --image=busybox --restart=Never --labels=a=b --env=X=y --command -- sleep 5
get pod r -o yaml
delete pods --all
""",
    "watching": """
create -f map.yaml
get cm m --watch-only --request-timeout=1s
get cm -w --request-timeout=1s
get cm -w --output-watch-events --request-timeout=1s
get cm m -w -o name --request-timeout=1s
""",
    "everything else that is kept": """
create -f service.yaml
get svc s
get svc s -o wide
get svc s -o yaml
describe svc s
create -f secret.yaml
get secret s
get secret s -o yaml
describe secret s
create secret generic g --from-literal=a=b
get secret g -o jsonpath={.data.a}
create -f claim.yaml
get pvc c -o yaml
create -f priority.yaml
get pc urgent
get pc urgent -o yaml
patch pc urgent --type=merge -p {"value":5}
delete pc urgent
create -f lease.yaml
get lease l
get lease l -o yaml
create -f template.yaml
get podtemplates
get podtemplate t -o yaml
create sa robot
get sa robot
get sa robot -o yaml
create configmap imm --from-literal=a=b
patch cm imm --type=merge -p {"immutable":true}
patch cm imm --type=merge -p {"data":{"a":"c"}}
patch cm imm --type=merge -p {"immutable":false}
create namespace other-space
get ns other-space
get ns other-space -o yaml
create namespace other-space
label ns other-space a=b
describe ns other-space
delete ns default
create -f generated.yaml -o jsonpath={.metadata.generateName}
create -f generated.yaml --dry-run=server -o jsonpath={.metadata.generateName}
""",
    "events": """
create -f event.yaml
create -f old-event.yaml
get events o
get events e -o yaml
get events.events.k8s.io e -o yaml
get events.events.k8s.io o -o yaml
get events.events.k8s.io o
get events --field-selector involvedObject.name=p,type=Warning -o name
get events.events.k8s.io --field-selector regarding.name=p -o name
patch event o --type=merge -p {"count":4}
get events.events.k8s.io o -o jsonpath={.deprecatedCount}
delete events.events.k8s.io o
get events o
delete events --all
""",
    "a training job": """
create -f job.yaml
create -f job.yaml
get pytorchjobs
get pytorchjob j -o yaml
get pytorchjob j -o jsonpath={.spec.pytorchReplicaSpecs.Worker.replicas}
get pytorchjobs -A -l team=a -o name
get pytorchjobs --field-selector metadata.name=j -o name
get pytorchjobs --field-selector spec.x=j -o name
get pytorchjob j --subresource=scale
get pytorchjob j --subresource=scale -o yaml
scale pytorchjob/j --replicas=3
scale pytorchjob/j --replicas=4 --current-replicas=9
scale pytorchjob j --replicas=-1
scale pytorchjob nosuch --replicas=1
scale tfjob j --replicas=1
patch pytorchjob j --subresource=scale --type=merge -p {"spec":{"replicas":-1}}
patch pytorchjob j --subresource=scale --type=merge -p {"spec":{"replicas":5}}
patch pytorchjob j --type=merge -p {"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":-2}}}}
patch pytorchjob j -p {"spec":{}}
patch pytorchjob j --type=merge -p {"spec":{"runPolicy":{"suspend":true}}}
patch pytorchjob j --type=json -p [{"op":"replace","path":"/spec/runPolicy/suspend","value":false}]
patch pytorchjob j --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Running","status":"True"}]}}
get pytorchjob j
get pytorchjob j -o jsonpath={.metadata.generation}
wait --for=condition=Running pytorchjob/j --timeout=5s
wait --for=condition=Succeeded pytorchjob/j --timeout=1s
create -f unsized-job.yaml
get pytorchjob u --subresource=scale
scale pytorchjob/u --replicas=2
create -f typed-job.yaml
create -f unknown-job.yaml
create -f unknown-job.yaml --validate=warn
apply -f job2.yaml
apply --server-side --field-manager=me -f job2.yaml
replace -f job2.yaml
replace --force -f job2.yaml
label pytorchjob j x=y
annotate pytorchjob j x=y
delete pytorchjob j --cascade=orphan --wait=false
delete pytorchjob u --cascade=foreground --wait=false
delete pytorchjobs --all
get pytorchjobs
""",
    "asking the server": """
api-versions
api-resources --api-group=kubeflow.org
api-resources --api-group=events.k8s.io
api-resources --api-group=coordination.k8s.io
api-resources --api-group=scheduling.k8s.io
api-resources --api-group=
explain pytorchjob --output=plaintext-openapiv2
explain pod.spec.nosuch
explain nosuch
explain pod.spec.containers.ports
auth can-i create pods
auth can-i '*' '*'
auth can-i get pytorchjobs --subresource=log
auth can-i get pods --as=jane
get pods --as=jane
get pod x --as=jane
get pytorchjobs -A --as=jane
create -f map.yaml --as=jane
delete ns default --as=jane
get --raw /livez --as=jane
get --raw /healthz
get --raw /readyz
get --raw /livez
get --raw /apis/apps/v2
get crd pytorchjobs.kubeflow.org -o name
create token nosuch
""",
}

# Commands whose answers differ, and why they may.
TYPE = "a value of the wrong type is told by its path and the type wanted, not in the words of Go's decoder"
GUESS = "an unknown field comes with a guess at what was meant"
STEP = "a JSON patch that fails says which operation failed, and why"
FEWER = "a home serves the kinds that training needs, and its own"
UNEXPLAINED = "Kubernetes' own types are served without their descriptions"
ROLE = "the path is written as in every complaint about a role"
DIFFERENCES: dict[str, str] = {
    'patch cm m --type=json -p [{"op":"remove","path":"/data/nothing"}]': STEP,
    'patch cm m --type=json -p [{"op":"test","path":"/data/new","value":"y"}]': STEP,
    'patch cm m --type=merge -p {"data":{"a":5}}': TYPE,
    'patch pod p -p {"spec":{"restartPolicy":"Always"}}': "the rule is told; Go's dump of both pods is not",
    "create -f typed-pod.yaml": TYPE,
    "create -f typed-job.yaml": TYPE,
    "create -f unknown-map.yaml": GUESS,
    "create -f unknown-map.yaml --validate=warn": GUESS,
    "get pvc c -o yaml": "a claim is a folder: it is bound at once, and nothing protects it by a finalizer",
    "describe ns other-space": "there are no quotas and limit ranges to describe",
    'patch pytorchjob j --subresource=scale --type=merge -p {"spec":{"replicas":-1}}': ROLE,
    'patch pytorchjob j --type=merge -p {"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":-2}}}}': ROLE,
    "api-versions": FEWER,
    "api-resources --api-group=": FEWER,
    "explain pytorchjob --output=plaintext-openapiv2": "OpenAPI is served in version 3 only",
    "explain pod.spec.containers.ports": UNEXPLAINED,
    "create token nosuch": "no tokens are issued: the one in the kubeconfig opens every door",
}
