#include "pre.h"
static int ff; static char r1[3];
static void*f(void*x){
#ifdef JITTER
 usleep(1000);
#endif
 pread(ff,r1,2,0);return 0;}
int main(){ ff=shm_open("/hbz",O_CREAT|O_RDWR,0600); shm_unlink("/hbz"); write(ff,"abcd",4); pthread_t a; pthread_create(&a,0,f,0); pwrite(ff,"XY",2,0); pthread_join(a,0); assert(r1[0]=='a'); return 0;}
