#include "pre.h"
#include <string.h>
#include <sys/socket.h>
static int ff; static char r1[3],r2[3]; static int p[2];
static void sfd(int s,int fd){ struct iovec v={"x",1}; char c[CMSG_SPACE(4)]={0}; struct msghdr mh={0,0,&v,1,c,sizeof c}; struct cmsghdr*h=CMSG_FIRSTHDR(&mh); h->cmsg_level=SOL_SOCKET;h->cmsg_type=SCM_RIGHTS;h->cmsg_len=CMSG_LEN(4); memcpy(CMSG_DATA(h),&fd,4); sendmsg(s,&mh,0);}
static int rfd(int s){ char d[9]; struct iovec v={d,1}; char c[CMSG_SPACE(4)]; struct msghdr mh={0,0,&v,1,c,sizeof c}; recvmsg(s,&mh,0); int f; memcpy(&f,CMSG_DATA(CMSG_FIRSTHDR(&mh)),4); return f;}
static void*f(void*x){read(ff,x,2);return 0;}
int main(){ char n[]="/tmp/scfXXXXXX"; int o=mkstemp(n); write(o,"abcd",4); lseek(o,0,0); socketpair(AF_UNIX,SOCK_STREAM,0,p); sfd(p[0],o); ff=rfd(p[1]); pthread_t a,b; pthread_create(&a,0,f,r1);pthread_create(&b,0,f,r2); pthread_join(a,0);pthread_join(b,0); unlink(n); assert(r1[0]=='a'); return 0;}
