"""What a TensorBoard is told: the spec of `tensorstack.dev/v1beta1` TensorBoards, which jobs may carry inside."""

from fullrank.api.schema import array, boolean, core_schema, integer, obj, string

SCHEDULER = obj(
    {
        "t9kScheduler": obj(
            {
                "queue": string(description="The queue to wait in."),
                "priority": integer(minimum=0, description="0 to 100; 0 if left out."),
            }
        )
    },
    description="Where to wait for a place, and how urgently; without it, the home's own order.",
)

TENSORBOARD_SPEC = obj(
    {
        "trainingLogFilesets": array(string(), description="Where the logs are: t9k://pvc/<claim>/<folder>."),
        "logDir": obj(
            {
                "pvc": array(obj({"name": string(), "subPath": array(string())})),
                "s3": obj({"secretRef": obj({"name": string()}), "uri": array(string())}),
                "http": obj({"url": array(string())}),
            }
        ),
        "image": string(description="Any image with TensorBoard in it."),
        "resources": core_schema("ResourceRequirements"),
        "suspend": boolean(description="True stops the server and keeps everything else."),
        "scheduler": SCHEDULER,
    },
    description="A TensorBoard that shows what the job logs.",
)
