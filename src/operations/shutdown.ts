import { setImmediate as immediately, setTimeout as delay } from 'node:timers/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { Connections } from '../connection/connections.js';
import { Lifecycle } from './lifecycle.js';

const POLL_MS = 20;
/**
 * How long connections stay open once the service stops. A request may be arriving, a client may be about to send one,
 * and a response may not have been read yet.
 */
const MOMENT_MS = 1_000;
/** How long the database may take to close. Nothing is lost if it takes longer: every answered create is committed. */
const CLOSE_MS = 3_000;

/**
 * Ends the process on SIGTERM and SIGINT. The service reports at once that it is not ready, but goes on serving for a
 * delay in which a proxy notices. Then it accepts no new connections, answers open requests, closes the database and
 * exits with 0.
 */
export function stopGracefully(
  app: NestExpressApplication,
  config: Config['operations'],
  logger: Logger,
): void {
  const server = app.getHttpServer();
  const connections = app.get(Connections);

  const stop = async (signal: string) => {
    const lifecycle = app.get(Lifecycle);
    if (lifecycle.isStopping) return;
    lifecycle.isStopping = true;
    logger.info({ signal, requests: connections.answering }, 'Stopping');
    connections.announceEnd();
    await delay(config.shutdownDelayMs);

    // Lets Node accept the connections that wait in the kernel, which would reset them.
    await immediately();
    connections.stopListening();
    const begun = performance.now();
    const elapsed = () => performance.now() - begun;
    const mustWait = () => connections.answering > 0 || (connections.count > 0 && elapsed() < MOMENT_MS);
    while (mustWait() && elapsed() < config.shutdownTimeoutMs) await delay(POLL_MS);
    const cut = connections.answering;
    server.closeAllConnections();
    // close() waits for the start, which may wait forever for another replica's migration.
    const closed = await Promise.race([app.close().then(() => true), delay(CLOSE_MS, false)]);
    logger.info({ cut, closed }, 'Stopped');
    process.exit(0);
  };

  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void stop(signal));
}
