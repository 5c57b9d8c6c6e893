#include "pre.h"
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>
int main(){ int s=socket(AF_INET,SOCK_STREAM|SOCK_NONBLOCK,0); struct sockaddr_in a={AF_INET,0,{htonl(INADDR_LOOPBACK)}}; bind(s,(void*)&a,sizeof a); listen(s,0); socklen_t l=sizeof a; getsockname(s,(void*)&a,&l); for(int i=0;i<2;i++){int k=socket(AF_INET,SOCK_STREAM|SOCK_NONBLOCK,0); connect(k,(void*)&a,sizeof a);} 
 int x=accept(s,0,0),y=accept(s,0,0); assert(x>=0); assert(y>=0); return 0;}
