// The service with OpenTelemetry's instrumentation as docs/OPERATIONS.md shows it, and a collector for its traces.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { atEnd } from './processes.js';
import { startService } from './servers.js';

const TRACING = '@opentelemetry/auto-instrumentations-node/register';

/** @returns the server; undefined, with a message about what to install, if OpenTelemetry is not installed. */
export async function startTraced(database) {
  let main;
  try {
    main = createRequire(import.meta.url).resolve(TRACING);
  } catch {
    console.log(`Tracing: skipped, ${TRACING} is not installed. It needs: npm ci --prefix bench`);
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
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.1',
      OTEL_NODE_RESOURCE_DETECTORS: 'env,host,os,process',
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
    },
  });
}
