#include "pre.h"
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>
static char b[66000],z[66000]; static int s[2];
static void*f(void*x){ write(s[0],b,66000); return 0;}
int main(){ int l=socket(AF_INET,SOCK_STREAM,0); struct sockaddr_in a={AF_INET,0,{htonl(INADDR_LOOPBACK)}}; socklen_t n=sizeof a; bind(l,(void*)&a,n); listen(l,1); getsockname(l,(void*)&a,&n); s[0]=socket(AF_INET,SOCK_STREAM,0); connect(s[0],(void*)&a,n); s[1]=accept(l,0,0);
 pthread_t t; pthread_create(&t,0,f,0); long r=0; 
#ifdef JITTER
 for(int i=0;i<200000&&(r=recv(s[1],z,66000,MSG_DONTWAIT))<0;i++);
#else
 for(int i=0;i<2&&(r=recv(s[1],z,66000,MSG_DONTWAIT))<0;i++);
#endif
 pthread_join(t,0); assert(r<0||r==66000); return 0;}
