// The official JavaScript client.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const jobs = { group: "kubeflow.org", version: "v1", namespace: "default", plural: "pytorchjobs" };
const name = "with-javascript";
const shell = { name: "pytorch", image: "shell", command: ["sh", "-c", "for i in 1 2 3; do echo step $i; done"] };
const body = {
  apiVersion: "kubeflow.org/v1",
  kind: "PyTorchJob",
  metadata: { name },
  spec: { runPolicy: {}, pytorchReplicaSpecs: { Master: { replicas: 1, template: { spec: { containers: [shell] } } } } },
};

assert.ok((await core.listNode()).items.length > 0);
await custom.createNamespacedCustomObject({ ...jobs, body });
await new Promise((done, fail) => {
  const watch = new k8s.Watch(config);
  let request;
  const seen = (_, job) => {
    const states = (job.status?.conditions ?? []).map((each) => each.type);
    if (job.metadata.name === name && states.includes("Succeeded")) {
      done();
      request.abort();
    }
  };
  const path = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  watch.watch(path, { timeoutSeconds: 60 }, seen, (error) => fail(error ?? new Error("too late"))).then((made) => (request = made));
});
const labelSelector = `training.kubeflow.org/job-name=${name}`;
const pods = (await core.listNamespacedPod({ namespace: "default", labelSelector })).items;
assert.deepEqual(pods.map((pod) => pod.metadata.name), [`${name}-master-0`]);
const lines = "step 1\nstep 2\nstep 3\n";
assert.equal(await core.readNamespacedPodLog({ name: `${name}-master-0`, namespace: "default" }), lines);
const followed = new PassThrough();
const text = new Promise((done) => {
  let said = "";
  followed.on("data", (chunk) => (said += chunk));
  followed.on("end", () => done(said));
});
await new k8s.Log(config).log("default", `${name}-master-0`, "pytorch", followed, { follow: true });
assert.equal(await text, lines);
const patched = await core.patchNamespacedPod(
  { name: `${name}-master-0`, namespace: "default", body: { metadata: { labels: { a: "b" } } } },
  k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch),
);
assert.equal(patched.metadata.labels.a, "b");
await custom.deleteNamespacedCustomObject({ ...jobs, name });
await assert.rejects(custom.getNamespacedCustomObject({ ...jobs, name }), (error) => error.code === 404);
console.log("fine");
