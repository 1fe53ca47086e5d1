import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';

/** The message of a client that asks for TLS (PostgreSQL's protocol, section 55.7). */
const SSL_REQUEST = '0000000804d2162f';

/** A TCP proxy in front of a server, like a load balancer. It can be pointed to another server. */
export class Relay {
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private targetPort: number,
  ) {}

  /** @param certificate if given, clients must use TLS; the connection to the server is always plain. */
  static async start(targetPort: number, certificate?: { cert: string; key: string }): Promise<Relay> {
    const server = createServer({ pauseOnConnect: certificate !== undefined });
    const relay = new Relay(server, targetPort);
    server.on('connection', (socket) => {
      relay.#keep(socket);
      if (certificate === undefined) relay.#forward(socket);
      else relay.#forwardSecured(socket, certificate);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return relay;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Sends new connections to this port. Open ones stay with their server. */
  leadTo(targetPort: number): void {
    this.targetPort = targetPort;
  }

  stop(): void {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy()).once('close', () => this.#sockets.delete(socket));
  }

  #forward(socket: Socket): void {
    const server = connect(this.targetPort, '127.0.0.1');
    this.#keep(server);
    socket.pipe(server).pipe(socket);
    socket.once('close', () => server.destroy());
    server.once('close', () => socket.destroy());
  }

  #forwardSecured(socket: Socket, certificate: { cert: string; key: string }): void {
    socket.once('data', (first: Buffer) => {
      if (first.toString('hex') !== SSL_REQUEST) {
        socket.destroy();
        return;
      }
      socket.pause();
      socket.write('S');
      const secureContext = createSecureContext(certificate);
      const secured = new TLSSocket(socket, { isServer: true, secureContext });
      this.#keep(secured);
      this.#forward(secured);
    });
    socket.resume();
  }
}
