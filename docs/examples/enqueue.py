# python enqueue.py ID…: tracks submissions through the queue. Needs: pip install bullmq
import asyncio
import os
import sys
import uuid

from bullmq import Queue
from bullmq.job import Job

URL = os.environ.get("DAWATCH_REDIS_URL", "redis://127.0.0.1:6379")


async def track(queue, ids):
    # Use your own job id: BullMQ's ids are a counter in Redis, which restarts when Redis is emptied and then names other jobs.
    job_id = f"track-{uuid.uuid4()}"
    await queue.add("track", {"submission_ids": ids}, {"jobId": job_id})
    # The job completes when the ids are on the server's disk, and fails with the reason if its data is invalid.
    while True:
        job = await Job.fromId(queue, job_id)
        if job is None:
            return None  # the job has disappeared from Redis
        if job.finishedOn:
            if job.failedReason:
                sys.exit(f"refused: {job.failedReason}")
            return job.returnvalue
        await asyncio.sleep(0.5)


async def main():
    queue = Queue("dawatch-submissions", {"connection": URL})
    result = None
    while result is None:  # ids that are already tracked stay unchanged
        result = await track(queue, sys.argv[1:])
    print("tracked", result)
    await queue.close()


asyncio.run(main())
