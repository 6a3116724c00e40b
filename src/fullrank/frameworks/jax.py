"""JAXJob: every worker runs the same program; worker 0 coordinates."""

from fullrank.frameworks.contract import Framework, Gang, Member, Wiring, env, masterless_words

COORDINATOR = Member("Worker", 0)


def wire(gang: Gang, member: Member) -> Wiring:
    return Wiring(
        env(
            PYTHONUNBUFFERED=1,
            COORDINATOR_PORT=gang.port(COORDINATOR),
            COORDINATOR_ADDRESS=gang.name(COORDINATOR),
            NUM_PROCESSES=gang.size,
            PROCESS_ID=gang.rank(member),
        )
    )


JAX = Framework(
    kind="JAXJob",
    plural="jaxjobs",
    replicas_field="jaxReplicaSpecs",
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    roles=("Worker",),
    wire=wire,
    leading=(("Worker",),),
    scalable=True,
    selector_in_status=True,
    words=masterless_words,
)
