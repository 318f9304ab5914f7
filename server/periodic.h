// A thread that does something at intervals.
#ifndef POSENC_SERVER_PERIODIC_H_
#define POSENC_SERVER_PERIODIC_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace posenc::server {

class Periodic {
 public:
  // Zero: never.
  Periodic(std::chrono::nanoseconds interval, std::function<void()> job);
  ~Periodic();  // after the job, if it runs

  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_PERIODIC_H_
