import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import { Connection, connectionLimits, connectionOf, type ConnectionLimits } from './connection.js';
import { deferContinue } from './expectation.js';
import type { Refuse } from './refuse.js';
import { refuseMalformedHeads } from './request-head.js';

const CHECK_INTERVAL_MS = 500;
/** Drops that follow each other within this time are logged once. */
const DROPS_SPELL_MS = 60_000;

/** All connections of the server: their number, their time limits and their end. */
@Injectable()
export class Connections {
  readonly limits: ConnectionLimits;
  /** How many were closed on arrival because MAX_CONNECTIONS were open. */
  dropped = 0;
  readonly #open = new Set<Connection>();
  #droppedAt = -Infinity;
  #server: Server | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.limits = connectionLimits(config.http.keepAliveTimeoutMs);
  }

  /**
   * Call it when the server has its listener for requests.
   *
   * @param server with Node's own time limits off.
   */
  guard(server: Server, refuse: Refuse): void {
    this.#server = server;
    const { bodyLimit, maxConnections } = this.config.http;
    server.maxConnections = maxConnections;
    // A client may end its side after its request, and still read (RFC 9112 section 9.6). Node's types lack this.
    (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
    server.on('drop', () => this.#countDrop());
    server.on('connection', (socket: Socket) => {
      const connection = new Connection(socket, this.limits, bodyLimit, refuse);
      this.#open.add(connection);
      socket.once('close', () => this.#open.delete(connection));
    });
    server.on('clientError', (error, socket) => connectionOf(socket as Socket)?.failBy(error));
    deferContinue(server);
    refuseMalformedHeads(server);
    const timer = setInterval(() => this.check(), CHECK_INTERVAL_MS).unref();
    server.on('close', () => clearInterval(timer));
  }

  get count(): number {
    return this.#open.size;
  }

  /** How many requests have arrived completely and are not answered yet. */
  get answering(): number {
    return [...this.#open].filter(({ isAnswering }) => isAnswering).length;
  }

  /** Sends `Connection: close` with every response from now on, so that no client uses a connection that is closing. */
  announceEnd(): void {
    for (const connection of this.#open) connection.announceEnd();
    this.#server?.prependListener('request', (_request, response) => {
      response.setHeader('Connection', 'close');
    });
  }

  /** Accepts no new connections. The HTTP server's own `close()` would also end those on which a head is arriving. */
  stopListening(): void {
    if (this.#server !== undefined) NetServer.prototype.close.call(this.#server);
  }

  /** Ends what takes too long on any connection. */
  check(): void {
    const now = performance.now();
    for (const connection of this.#open) connection.check(now);
  }

  #countDrop(): void {
    this.dropped++;
    const now = performance.now();
    if (now - this.#droppedAt > DROPS_SPELL_MS)
      this.logger.warn({ connections: this.count }, 'New connections are closed: MAX_CONNECTIONS are open');
    this.#droppedAt = now;
  }
}
