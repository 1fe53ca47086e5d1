import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { Failure } from '../errors/failure.js';
import { LOGGER } from '../logging/logging.js';

const OPERATIONS_PATH = /^\/(?:metrics|health\/.*)$/;

/**
 * METRICS_PORT: a second port, so that a firewall can hide metrics and probes. Its connections are passed to the one
 * HTTP server, so its time limits, log and shutdown apply to them.
 */
@Injectable()
export class OperationsPort implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #connections = new WeakSet<Socket>();
  #server: Server | undefined;

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** The port that it listens on, or 0 if it does not listen. */
  get port(): number {
    return (this.#server?.address() as AddressInfo | null | undefined)?.port ?? 0;
  }

  /** @throws if the port is taken or HOST is not an address of this machine. */
  async onApplicationBootstrap(): Promise<void> {
    const httpServer = this.adapterHost.httpAdapter.getHttpServer() as Server;
    // As node:http sets them for its own connections.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#connections.add(socket);
      httpServer.emit('connection', socket);
    });
    // A limit of its own, so that probes are answered while clients hold all connections of the other port.
    this.#server.maxConnections = this.config.http.maxConnections;
    this.#server.on('drop', () => httpServer.emit('drop'));
    const { host } = this.config.http;
    this.#server.listen(this.config.operations.metricsPort, host);
    await once(this.#server, 'listening');
    this.logger.info({ host, port: this.port }, 'Listening for metrics and probes');
  }

  onApplicationShutdown(): void {
    this.#server?.close();
  }

  /** @returns middleware that serves metrics and probes only on this port, and all else only on the other. */
  separate() {
    return (request: Request, _response: Response, next: NextFunction): void => {
      const isHere = this.#connections.has(request.socket) === OPERATIONS_PATH.test(request.path);
      next(isHere ? undefined : new Failure(404, 'There is nothing at this path'));
    };
  }
}
