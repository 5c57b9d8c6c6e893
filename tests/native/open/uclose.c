#include "pre.h"
#include <sys/socket.h>
static int p[2]; static char buf[150000];
static void*f(void*x){ signal(SIGPIPE,SIG_IGN); long r=write(p[0],buf,150000); assert(r==-1||r==150000); return 0;}
int main(){ socketpair(AF_UNIX,SOCK_STREAM,0,p); pthread_t a; pthread_create(&a,0,f,(void*)0); char c; read(p[1],&c,1); close(p[1]); pthread_join(a,0); return 0;}
