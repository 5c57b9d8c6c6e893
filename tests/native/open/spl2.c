#include "pre.h"
static int p[2],q[2];
static void*f(void*x){splice(p[0],0,q[1],0,10,0); splice(p[0],0,q[1],0,10,SPLICE_F_NONBLOCK); return 0;}
int main(){pipe(p);pipe(q); pthread_t t; pthread_create(&t,0,f,0); write(p[1],"abc",3);write(p[1],"d",1); char b[9]; read(q[0],b,9); pthread_join(t,0); return 0;}
