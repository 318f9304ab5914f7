// A call on a completion queue, in the words of gRPC's own reactors: operations are
// started, and reactions follow.
//
//   IncomingCall ──arrives──> Router ──> a Reactor ──Finish──> OnDone
//        │                               StartRead, StartWrite ──> OnReadDone, OnWriteDone
//        └── ended (the status is sent, or the caller is gone) ──> OnCancel
#ifndef POSENC_SERVER_REACTOR_H_
#define POSENC_SERVER_REACTOR_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/event.h"

namespace posenc::server {

class Reactor;

// A call as gRPC holds it, from before it arrives.
class IncomingCall {
 public:
  // `presence` is held as long as the call is there.
  explicit IncomingCall(std::shared_ptr<const void> presence) : presence_(std::move(presence)) {}
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  // `arrived` happens when a call has come, or, not ok, when none will. Once.
  void Expect(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue,
              Event* arrived);

  // "/package.Service/Method". REQUIRES: it has arrived.
  const std::string& method() const { return context_.method(); }

 private:
  friend class Reactor;

  void Ended(bool ok);

  const std::shared_ptr<const void> presence_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  MemberEvent<IncomingCall> ended_{this, &IncomingCall::Ended};
  Reactor* reactor_ = nullptr;
};

// Operations may be started from any thread: one read and one write at a time, Finish
// or StartWriteAndFinish once, after the last write. What they are given stays until
// they are done. Reactions come on the queue's thread, one after another. When a write
// or a read was not ok the call still ends with Finish.
class Reactor {
 public:
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

 protected:
  explicit Reactor(std::unique_ptr<IncomingCall> call);
  virtual ~Reactor() = default;

  grpc::ServerContext* context() const { return &call_->context_; }

  void StartRead(grpc::ByteBuffer* message);
  void StartWrite(const grpc::ByteBuffer& message);
  void StartWriteAndFinish(const grpc::ByteBuffer& message, const grpc::Status& status);
  void Finish(const grpc::Status& status);

 private:
  friend class IncomingCall;

  virtual void OnReadDone(bool /*ok*/) {}
  virtual void OnWriteDone(bool /*ok*/) {}
  // The caller is gone. Not after Finish has been carried out.
  virtual void OnCancel() {}
  // Nothing follows: the object deletes itself.
  virtual void OnDone() = 0;

  void ReadDone(bool ok);
  void WriteDone(bool ok);
  void Finished(bool ok);
  void Ended();
  void Settle();

  const std::unique_ptr<IncomingCall> call_;
  MemberEvent<Reactor> read_done_{this, &Reactor::ReadDone};
  MemberEvent<Reactor> write_done_{this, &Reactor::WriteDone};
  MemberEvent<Reactor> finished_{this, &Reactor::Finished};
  bool is_finished_ = false;  // of the queue's thread
  // Events that are still to happen: what was started, the finish, the end.
  std::atomic<int> awaited_{2};
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_REACTOR_H_
