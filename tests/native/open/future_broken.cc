#include <cassert>
#include <future>
#include <thread>
using namespace std; using namespace std::chrono_literals;
int main(){promise<int> p; auto f=p.get_future().share(); bool ready=false; thread a([&ready,f]{ready=f.wait_for(100us)==future_status::ready;}); {promise<int> q=move(p);} a.join(); assert(ready); return 0;}
