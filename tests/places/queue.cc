// Taken from an empty queue, if the taker comes first.
#include <mutex>
#include <thread>

template <typename T> struct Queue {
    std::mutex lock;
    T *head = nullptr;
    T pop() { std::lock_guard<std::mutex> guard(lock); return *head; }
    void push(T *item) { std::lock_guard<std::mutex> guard(lock); head = item; }
};

static Queue<int> queue;
static int item = 4;

int main()
{
    std::thread other([] { queue.push(&item); });
    int got = queue.pop();
    other.join();
    return got == 4 ? 0 : 1;
}
