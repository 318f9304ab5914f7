// What is done when an operation of gRPC's is: the tag of a completion queue.
#ifndef POSENC_SERVER_EVENT_H_
#define POSENC_SERVER_EVENT_H_

namespace posenc::server {

class Event {
 public:
  // On the thread of the queue, once for each operation that was started with it.
  virtual void Happen(bool ok) = 0;

 protected:
  ~Event() = default;
};

// Calls a member of the object that it lies in.
template <typename Object>
class MemberEvent final : public Event {
 public:
  using Member = void (Object::*)(bool ok);

  MemberEvent(Object* object, Member member) : object_(object), member_(member) {}
  MemberEvent(const MemberEvent&) = delete;
  MemberEvent& operator=(const MemberEvent&) = delete;

  void Happen(bool ok) override { (object_->*member_)(ok); }

 private:
  Object* const object_;
  const Member member_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_EVENT_H_
