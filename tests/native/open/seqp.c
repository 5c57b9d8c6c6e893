#include "pre.h"
#include <sys/socket.h>
int main(){ int p[2]; char b; socketpair(AF_UNIX,SOCK_SEQPACKET,0,p); send(p[1],"u",1,0); close(p[0]); int r=send(p[1],"q",1,MSG_NOSIGNAL); assert(r==-1&&errno==EPIPE); return 0;}
