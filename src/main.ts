import { writeSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { isatty } from 'node:tty';
import { ConfigError, loadConfigOfProcess } from './config/config.js';
import { createApp } from './app.js';
import { withOneTimeToken } from './auth/opaque-tokens.js';
import { Database } from './database/database.js';
import { createLogger } from './logging/logging.js';
import { stopGracefully } from './operations/shutdown.js';
import { startFailure } from './start-failure.js';
import { welcome } from './welcome.js';

const [STDOUT, STDERR] = [1, 2];

/** Writes text for a person. */
function tell(text: string, fd: number): void {
  try {
    writeSync(fd, text);
  } catch {
    // The reader is gone or the disk is full: nobody can be told.
  }
}

// A failed write by a library or by Node itself must not end the process either.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

try {
  const { config, token } = withOneTimeToken(loadConfigOfProcess());
  const logger = createLogger(config.operations);
  // Node's own report would show every property of the error, such as the values of a statement.
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'The service cannot go on');
    process.exit(1);
  });

  const app = await createApp(config, logger);
  stopGracefully(app, config.operations, logger);
  await app.listen(config.http.port, config.http.host);
  const { port } = app.getHttpServer().address() as AddressInfo;
  logger.info({ host: config.http.host, port }, 'Listening');
  const isUsable = await app.get(Database).started;
  // If standard output is not a terminal, it carries only log lines.
  if (isUsable && !config.production)
    tell(welcome(config.http, port, token), isatty(STDOUT) ? STDOUT : STDERR);
} catch (error) {
  tell(error instanceof ConfigError ? `${error.message}\n` : startFailure(error), STDERR);
  process.exit(1);
}
