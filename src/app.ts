import type { DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import createExpress from 'express';
import type { Logger } from 'pino';
import { AppModule } from './app.module.js';
import type { Config } from './config/config.js';
import { allowedMethods } from './http/allowed-methods.js';
import { FailureFilter } from './http/failure.filter.js';
import { FastExpressAdapter } from './http/fast-express.adapter.js';
import { Connections } from './connection/connections.js';
import { MAX_HEAD } from './connection/framing.js';
import { refuseBy } from './connection/refuse.js';
import { serveDocs } from './openapi/docs.js';
import { buildDocument } from './openapi/document.js';
import { Operations, operationsOf } from './openapi/operations.js';
import { NestLogger } from './logging/logging.js';
import { METRICS, type Metrics } from './operations/metrics.js';
import { OperationsPort } from './operations/operations-port.js';
import { refusalLog, requestLog } from './operations/request-log.js';

/** The request headers that the service reads, and those that tracing and gateways add. */
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
 * Builds the whole service, for `main.ts` and for the tests. It does not listen yet.
 *
 * @param root the module to run, if it is not the service's own.
 * @returns the application. Its {@link Database} starts when the application is initialised or listens.
 */
export async function createApp(
  config: Config,
  logger: Logger,
  root: DynamicModule = AppModule.forRoot(config, logger),
): Promise<NestExpressApplication> {
  const express = createExpress();
  // Paths that differ in case (RFC 3986 section 6.2.2.1) or by a slash are different paths. Express reads these two
  // settings when the adapter adds the first route or middleware.
  express.enable('case sensitive routing').enable('strict routing');
  express.disable('x-powered-by').disable('etag');
  // The query is never parsed, so that nothing, above all no token, is taken from it.
  express.set('query parser', false);
  express.set('trust proxy', config.http.trustProxy);

  const adapter = new FastExpressAdapter(express, {
    keepAliveTimeout: config.http.keepAliveTimeoutMs,
    // connection/ keeps both time limits, since it knows when a request begins. It also limits the size of a head.
    headersTimeout: 0,
    requestTimeout: 0,
    maxHeaderSize: 2 * MAX_HEAD,
    // connection/request-head.ts checks it and answers with the Error body.
    requireHostHeader: false,
  });
  const app = await NestFactory.create<NestExpressApplication>(root, adapter, {
    logger: new NestLogger(logger),
    abortOnError: false,
    // json-body/json-body.ts reads the body, after the guard and without rounding a number.
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
      // allowedMethods() answers every OPTIONS.
      preflightContinue: true,
    });
  }
  if (config.operations.metricsPort !== undefined) app.use(app.get(OperationsPort).separate());
  app.use(allowedMethods(express));
  app.useGlobalFilters(new FailureFilter(operations, logger));
  if (config.http.docs) serveDocs(express, document);

  const connections = app.get(Connections);
  connections.guard(app.getHttpServer(), refuseBy(operations, refusalLog(logger, metrics)));
  metrics.watch('http_connections', 'Open connections', () => connections.count);
  metrics.watchTotal(
    'http_connections_dropped_total',
    'Connections closed at once because MAX_CONNECTIONS were open',
    () => connections.dropped,
  );
  return app;
}
