// OpenLDAP's thread pool (libldap, as slapd uses it): two tasks and one that pauses the pool, then the pool is destroyed.
#include <stddef.h>

// The library's own functions, which its public headers do not declare.
typedef struct ldap_int_thread_pool_s *pool_type;
typedef void *task(void *context, void *arg);
int ldap_pvt_thread_initialize(void);
int ldap_pvt_thread_pool_init(pool_type *, int threads, int pending);
int ldap_pvt_thread_pool_submit(pool_type *, task *, void *);
int ldap_pvt_thread_pool_pause(pool_type *);
int ldap_pvt_thread_pool_resume(pool_type *);
int ldap_pvt_thread_pool_destroy(pool_type *, int run_pending);

static pool_type pool;
static int done;

static void *work(void *context, void *arg)
{
	(void)context;
	__sync_fetch_and_add(&done, 1);
	return arg;
}

static void *pausing(void *context, void *arg)
{
	(void)context;
	if (!ldap_pvt_thread_pool_pause(&pool))
		ldap_pvt_thread_pool_resume(&pool);
	return arg;
}

int main(void)
{
	ldap_pvt_thread_initialize();
	if (ldap_pvt_thread_pool_init(&pool, 2, 0))
		return 2;
	ldap_pvt_thread_pool_submit(&pool, work, NULL);
	ldap_pvt_thread_pool_submit(&pool, work, NULL);
	ldap_pvt_thread_pool_submit(&pool, pausing, NULL);
	ldap_pvt_thread_pool_destroy(&pool, 1);
	return 0;
}
