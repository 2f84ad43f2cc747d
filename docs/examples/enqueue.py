# python enqueue.py ID…: hands submissions over through the queue. Needs: pip install bullmq
import asyncio
import os
import sys
import uuid

from bullmq import Queue
from bullmq.job import Job

URL = os.environ.get("DAWATCH_REDIS_URL", "redis://127.0.0.1:6379")


async def track(queue, ids):
    # An id of your own: BullMQ's are counted in Redis, and begin anew when it was emptied, with somebody else's job.
    job_id = f"track-{uuid.uuid4()}"
    await queue.add("track", {"submission_ids": ids}, {"jobId": job_id})
    # Done once it is on the server's disk; failed with the reason if the data is no good.
    while True:
        job = await Job.fromId(queue, job_id)
        if job is None:
            return None  # gone from Redis
        if job.finishedOn:
            if job.failedReason:
                sys.exit(f"refused: {job.failedReason}")
            return job.returnvalue
        await asyncio.sleep(0.5)


async def main():
    queue = Queue("dawatch-submissions", {"connection": URL})
    result = None
    while result is None:  # what is tracked already stays as it is
        result = await track(queue, sys.argv[1:])
    print("tracked", result)
    await queue.close()


asyncio.run(main())
