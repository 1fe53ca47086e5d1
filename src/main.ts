import type { AddressInfo } from 'node:net';
import { ConfigError, loadConfigOfProcess } from './config/config.js';
import { createApp } from './app.js';
import { withOneTimeToken } from './auth/one-time-token.js';
import { Database } from './database/database.js';
import { createLogger } from './logging/logging.js';
import { stopGracefully } from './operations/shutdown.js';
import { welcome } from './welcome.js';

try {
  const { config, token } = withOneTimeToken(loadConfigOfProcess());
  const logger = createLogger(config.operations);
  // Node's own report would show all that hangs on the error, the values of a statement among it.
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
  if (isUsable && !config.production) process.stdout.write(welcome({ host: config.http.host, port, token }));
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    error instanceof ConfigError ? `${message}\n` : `Plant Store could not start: ${message}\n`,
  );
  process.exit(1);
}
