// Exceptions that unwind through frames of patched code, while a second thread throws its own: destructors, rethrows, exception specifications,
// exceptions within a sort, a map and a recursion, and one that another thread gets by a future.
#include <algorithm>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Counted {
    static thread_local int alive, made;
    std::string name;
    explicit Counted(int n) : name(std::to_string(n) + " of those that are counted") { alive++, made++; }
    ~Counted() { alive--; }
};
thread_local int Counted::alive = 0, Counted::made = 0;

struct Tower : std::runtime_error {
    int depth;
    explicit Tower(int depth) : std::runtime_error("tower " + std::to_string(depth)), depth(depth) {}
};

int climb(int depth, int limit, std::vector<int> &seen) {
    Counted counted(depth);
    seen.push_back(depth);
    if (depth == limit) throw Tower(depth);
    try {
        return climb(depth + 1, limit, seen) + 1;
    } catch (Tower &tower) {
        if (depth % 7 == 0) throw Tower(tower.depth + depth);
        seen.back() += depth;
        throw;
    }
}

long sorted(int n) {
    std::vector<std::unique_ptr<Counted>> all;
    for (int i = 0; i < n; i++) all.push_back(std::make_unique<Counted>(i * 7919 % n));
    long compared = 0;
    try {
        std::sort(all.begin(), all.end(), [&](const auto &a, const auto &b) {
            if (++compared == 6L * n) throw std::length_error(a->name);
            return a->name < b->name;
        });
    } catch (const std::length_error &) {
        compared = -compared;
    }
    return compared;
}

long mapped(int n) {
    std::map<std::string, long> words;
    long caught = 0;
    for (int i = 0; i < n; i++) {
        try {
            if (i % 3 == 0) words.at(std::to_string(i * 31 % n));
            words[std::to_string(i * 17 % n)] += i;
            if (i % 11 == 0) throw i;
        } catch (const std::out_of_range &) {
            caught++;
        } catch (int number) {
            caught += number;
        }
    }
    for (const auto &[word, count] : words) caught = caught * 31 + count + long(word.size());
    return caught;
}

std::string all_of(int n) {
    std::string text;
    std::vector<int> seen;
    for (int limit = 1; limit < n; limit++) {
        try {
            climb(0, limit, seen);
        } catch (const std::exception &error) {
            text += std::string(error.what()) + (limit % 8 ? " " : "\n");
        }
    }
    long sum = 0;
    for (int one : seen) sum = sum * 7 + one;
    return text + std::to_string(sum) + " " + std::to_string(sorted(10 * n)) + " " + std::to_string(mapped(10 * n)) + " " +
           std::to_string(Counted::alive) + " " + std::to_string(Counted::made) + "\n";
}

}  // namespace

int main() {
    std::string others;
    std::thread other([&] { others = all_of(40); });
    std::string own = all_of(60);
    other.join();
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread fails([&] {
        try {
            std::vector<int> few(3);
            promise.set_value(few.at(7));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    });
    try {
        std::printf("%d\n", future.get());
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
    }
    fails.join();
    std::fputs((own + others).c_str(), stdout);
}
