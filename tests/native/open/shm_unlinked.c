#include "o.h"
static int f; static void*t(void*a){ J(); ftruncate(f,5); return 0;}
int main(){ char n[40]; sprintf(n,"/vs%d",getpid()); f=shm_open(n,O_CREAT|O_RDWR,0600); shm_unlink(n); pthread_t a; pthread_create(&a,0,t,0); J(); struct stat s; fstat(f,&s); pthread_join(a,0); assert(s.st_size==5); }
