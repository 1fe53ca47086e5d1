import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { Lifecycle } from './lifecycle.js';

const POLL_MS = 20;
/** How long a request that is still arriving may go on doing so once the service stops. */
const ARRIVAL_MS = 1_000;
/** How long the database may take to close. Nothing is lost where it does not: every answered create is committed. */
const CLOSE_MS = 3_000;

/**
 * Ends the process on SIGTERM and SIGINT: not ready at once; still serving for the delay, in which a proxy takes note;
 * then no new connections, the requests under way are answered, the database is closed, and the exit code is 0.
 */
export function stopGracefully(
  app: NestExpressApplication,
  config: Config['operations'],
  logger: Logger,
): void {
  const server = app.getHttpServer();
  // What each open connection waits for an answer to. The requests themselves are in no Set or Map: V8 grows a new table
  // for one that many come to and go from, and what the old tables held outlives its request by many collections.
  const underWay = new Map<Socket, IncomingMessage[]>();
  server.on('connection', (socket: Socket) => {
    underWay.set(socket, []);
    // The responses to pipelined requests that waited for their turn are never closed when the client goes.
    socket.once('close', () => underWay.delete(socket));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const requests = underWay.get(request.socket);
    requests?.push(request);
    response.on('close', () => requests?.splice(requests.indexOf(request), 1));
  });
  const allUnderWay = () => [...underWay.values()].flat();

  const stop = async (signal: string) => {
    const lifecycle = app.get(Lifecycle);
    if (lifecycle.isStopping) return;
    lifecycle.isStopping = true;
    logger.info({ signal, requests: allUnderWay().length }, 'Stopping');
    // Each connection ends with its next response, so that a client does not use it again while it is being closed.
    server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
      response.setHeader('Connection', 'close');
    });
    await delay(config.shutdownDelayMs);

    server.close();
    server.closeIdleConnections();
    const begun = performance.now();
    const elapsed = () => performance.now() - begun;
    const mustWait = () => allUnderWay().some(({ complete }) => complete || elapsed() < ARRIVAL_MS);
    while (mustWait() && elapsed() < config.shutdownTimeoutMs) {
      await delay(POLL_MS);
      server.closeIdleConnections();
    }
    const cut = allUnderWay().length;
    server.closeAllConnections();
    // It waits for a start that itself may wait for ever, for another replica's migration.
    const closed = await Promise.race([app.close().then(() => true), delay(CLOSE_MS, false)]);
    logger.info({ cut, closed }, 'Stopped');
    process.exit(0);
  };

  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void stop(signal));
}
