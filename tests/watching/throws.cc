/* Exceptions through frames whose code is patched, with destructors and handlers that use memory. */
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::map<std::string, int> seen;
struct Guard { std::string name; ~Guard() { seen[name]++; } };
static int deep(std::vector<int> &v, int n) {
    Guard g{"deep" + std::to_string(n % 5)};
    v.push_back(n);
    if (n % 7 == 3) throw std::runtime_error(std::to_string(v.back() * 3));
    if (n > 40) throw n;
    return deep(v, n + 1) + v[n % v.size()];
}
int main() {
    std::thread idle([] {});
    long sum = 0;
    for (int round = 0; round < 200; round++) {
        std::vector<int> v;
        try {
            try { sum += deep(v, round % 50); } catch (const std::runtime_error &e) { sum += std::stol(e.what()); if (round % 3 == 0) throw; }
        } catch (int n) { sum += n; } catch (...) { sum += v.size(); }
    }
    idle.join();
    for (auto &[name, n] : seen) std::printf("%s %d\n", name.c_str(), n);
    std::printf("%ld\n", sum);
}
