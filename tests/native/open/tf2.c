#include "pre.h"
#include <sys/timerfd.h>
int main(){int t=timerfd_create(1,0); struct itimerspec s={{0,1000000},{0,1000000}}; timerfd_settime(t,0,&s,0); unsigned long long v; for(int i=0;i<3;i++){ 
#ifdef JITTER
usleep(3000);
#endif
read(t,&v,8); assert(v==1);} return 0;}
