// The service with OpenTelemetry's own instrumentation as docs/OPERATIONS.md shows it, and something that takes its traces.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { atEnd } from './processes.js';
import { startService } from './servers.js';

const TRACING = '@opentelemetry/auto-instrumentations-node/register';

/** @returns undefined, with a word about what to install, where OpenTelemetry is not installed. */
export async function startTraced(database) {
  const folder = process.env.BENCH_TRACING ?? fileURLToPath(new URL('..', import.meta.url));
  let main;
  try {
    main = createRequire(join(folder, 'package.json')).resolve(TRACING);
  } catch {
    console.log(`Tracing: skipped, ${TRACING} is not installed; BENCH_TRACING names the folder where it is`);
    return undefined;
  }
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.end());
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  atEnd(() => {
    collector.close();
    collector.closeAllConnections();
  });
  return startService(database, {
    nodeOptions: ['--import', pathToFileURL(main).href],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`,
      OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'http,pg',
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      ...(process.env.BENCH_OTEL_ENABLED && {
        OTEL_NODE_ENABLED_INSTRUMENTATIONS: process.env.BENCH_OTEL_ENABLED,
      }),
    },
  });
}
