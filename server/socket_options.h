// How a connection's socket is set up before gRPC has it.
#ifndef POSENC_SERVER_SOCKET_OPTIONS_H_
#define POSENC_SERVER_SOCKET_OPTIONS_H_

namespace posenc::server {

// For a socket that was accepted. What the system does not allow is left as it was.
void SetSocketOptions(int socket);

}  // namespace posenc::server

#endif  // POSENC_SERVER_SOCKET_OPTIONS_H_
