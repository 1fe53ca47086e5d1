import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import createExpress from 'express';
import type { Logger } from 'pino';
import { AppModule } from './app.module.js';
import type { Config } from './config/config.js';
import { allowedMethods } from './http/allowed-methods.js';
import { FailureFilter } from './http/failure.filter.js';
import { deferContinue } from './connection/expectation.js';
import { FastExpressAdapter } from './http/fast-express.adapter.js';
import { Connections } from './connection/connections.js';
import { MAX_HEAD } from './connection/framing.js';
import { refuseBy } from './connection/refuse.js';
import { refuseMalformedHeads } from './connection/request-head.js';
import { serveDocs } from './openapi/docs.js';
import { buildDocument } from './openapi/document.js';
import { Operations, operationsOf } from './openapi/operations.js';
import { NestLogger } from './logging/logging.js';
import { METRICS, type Metrics } from './operations/metrics.js';
import { OperationsPort } from './operations/operations-port.js';
import { refusalLog, requestLog } from './operations/request-log.js';

/** Beside the token and the body: what tracing and gateways add, and a body's coding. */
const CORS_REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Content-Encoding',
  'X-Request-Id',
  'traceparent',
  'tracestate',
  'baggage',
];

/**
 * The whole service, not listening yet: what `main.ts` runs and what the tests test.
 *
 * @param root the module to run, if it is more than the service's own.
 * @returns the application; its {@link Database} starts when it is initialised or listens.
 */
export async function createApp(
  config: Config,
  logger: Logger,
  root: DynamicModule = AppModule.forRoot(config, logger),
): Promise<NestExpressApplication> {
  const express = createExpress();
  // RFC 3986 section 6.2.2.1: paths that differ in case or by a slash are different paths. Express looks at these two
  // when the first route or middleware is added, which the adapter does.
  express.enable('case sensitive routing').enable('strict routing');
  express.disable('x-powered-by').disable('etag');
  // Nothing reads the query, so nothing (above all no token) can come from there.
  express.set('query parser', false);
  express.set('trust proxy', config.http.trustProxy);

  const adapter = new FastExpressAdapter(express, {
    keepAliveTimeout: config.http.keepAliveTimeoutMs,
    // connection/ keeps both, since it knows when a request begins, and the size of a head, to which Node adds nothing.
    headersTimeout: 0,
    requestTimeout: 0,
    maxHeaderSize: 2 * MAX_HEAD,
    // Checked in connection/request-head.ts, where the answer has the Error body.
    requireHostHeader: false,
  });
  const app = await NestFactory.create<NestExpressApplication>(root, adapter, {
    logger: new NestLogger(logger),
    abortOnError: false,
    // The body is read by json-body/json-body.ts, after the guard and without loss.
    bodyParser: false,
  });
  const metrics = app.get<Metrics>(METRICS);

  const document = buildDocument(app, config.http.baseUrl);
  const operations = new Operations(document);

  for (const { template, method, operation } of operationsOf(document))
    metrics.expectRequests(method, template, [...Object.keys(operation.responses), '500']);

  app.use(requestLog(logger, metrics));
  if (config.http.corsOrigins.length > 0) {
    app.enableCors({
      origin: config.http.corsOrigins,
      methods: operations.methods,
      allowedHeaders: CORS_REQUEST_HEADERS,
      exposedHeaders: ['Plant-Id', 'X-Request-Id', 'WWW-Authenticate', 'Retry-After'],
      maxAge: 600,
      // allowedMethods() answers OPTIONS, whoever asks.
      preflightContinue: true,
    });
  }
  if (config.operations.metricsPort !== undefined) app.use(app.get(OperationsPort).separate());
  app.use(allowedMethods(express));
  app.useGlobalFilters(new FailureFilter(operations, logger));
  if (config.http.docs) serveDocs(express, document);

  const server = app.getHttpServer();
  const refuse = refuseBy(
    ({ method, url }, error) => operations.statusOf(method, url, error),
    refusalLog(logger, metrics),
  );
  const connections = app.get(Connections);
  connections.guard(server, refuse);
  deferContinue(server);
  refuseMalformedHeads(server, refuse);
  metrics.watch('http_connections', 'Open connections', () => connections.count);
  metrics.watchTotal(
    'http_connections_dropped_total',
    'Connections closed at once because MAX_CONNECTIONS were open',
    () => connections.dropped,
  );
  return app;
}
