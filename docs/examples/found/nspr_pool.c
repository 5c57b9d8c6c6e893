// NSPR's thread pool: two jobs, one with a timer that is cancelled, then the pool is shut down and joined.
#include <nspr.h>
#include <prtpool.h>

static void job(void *counter)
{
	__sync_fetch_and_add((int *)counter, 1);
}

int main(void)
{
	static int done[3];
	PRThreadPool *pool;
	PRJob *first, *timed;

	PR_Init(PR_USER_THREAD, PR_PRIORITY_NORMAL, 0);
	pool = PR_CreateThreadPool(1, 2, 0);
	first = PR_QueueJob(pool, job, &done[0], PR_TRUE);
	PR_QueueJob(pool, job, &done[1], PR_FALSE);
	timed = PR_QueueJob_Timer(pool, PR_MillisecondsToInterval(1), job, &done[2], PR_TRUE);
	PR_CancelJob(timed);
	PR_JoinJob(timed);
	PR_JoinJob(first);
	PR_ShutdownThreadPool(pool);
	PR_JoinThreadPool(pool);
	return 0;
}
