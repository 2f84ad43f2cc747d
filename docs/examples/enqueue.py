# Hands submissions over through Redis and waits until each is final: python enqueue.py <submission id> …
import asyncio
import os
import sys

from bullmq import Queue, Worker
from bullmq.job import Job

URL = os.environ.get("DAWATCH_REDIS_URL", "redis://127.0.0.1:6379")


async def main():
    still_open = set(sys.argv[1:])
    done = asyncio.Event()

    queue = Queue("dawatch-submissions", {"connection": URL})
    job_id = (await queue.add("track", {"submission_ids": list(still_open)})).id
    # Done once it is on the server's disk; failed with the reason if the data is no good.
    while not (job := await Job.fromId(queue, job_id)) or not job.finishedOn:
        await asyncio.sleep(0.5)
    if job.failedReason:
        sys.exit(f"refused: {job.failedReason}")
    print("tracked", job.returnvalue)

    # Every event is a job, for one of the workers on this queue. It may come twice, with the same id.
    async def take(event_job, _token):
        submission = event_job.data["data"].get("submission") or {}
        if submission.get("submission_id") not in still_open:
            return
        print(event_job.data["type"], submission["submission_id"])
        if submission["status"] not in ("tracking", "pending", "failing"):
            still_open.discard(submission["submission_id"])
        if not still_open:
            done.set()

    worker = Worker("dawatch-events", take, {"connection": URL})
    await done.wait()
    await worker.close()
    await queue.close()


asyncio.run(main())
