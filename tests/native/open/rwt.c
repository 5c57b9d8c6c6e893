#include "pre.h"
static pthread_rwlock_t rw;
static void*w(void*x){ struct timespec t; clock_gettime(0,&t); t.tv_nsec+=20000000; if(t.tv_nsec>=1000000000){t.tv_nsec-=1000000000;t.tv_sec++;} return (void*)(long)pthread_rwlock_timedwrlock(&rw,&t);}
int main(){ pthread_rwlockattr_t a; pthread_rwlockattr_init(&a); pthread_rwlockattr_setkind_np(&a,PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP); pthread_rwlock_init(&rw,&a);
 pthread_rwlock_rdlock(&rw); pthread_t t; void*r; pthread_create(&t,0,w,0); usleep(5000); int e=pthread_rwlock_tryrdlock(&rw); pthread_join(t,&r); assert(!(e==EBUSY&&(long)r==ETIMEDOUT)); return 0;}
