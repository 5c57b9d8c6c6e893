#include "pre.h"
int main(){int p[2],q[2];pipe(p);pipe(q); int r=splice(p[0],0,q[1],0,10,SPLICE_F_NONBLOCK); assert(r==-1&&errno==EAGAIN); return 0;}
