#include "pre.h"
#include <sys/timerfd.h>
int main(){int t=timerfd_create(1,TFD_NONBLOCK); struct itimerspec s={{0,0},{10,0}}; timerfd_settime(t,0,&s,0); unsigned long long v; int n=0; for(int i=0;i<4;i++) n+=read(t,&v,8)==8; assert(n==1); return 0;}
