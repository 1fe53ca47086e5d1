import type { ServerResponse } from 'node:http';
import type { Failure } from '../errors/failure.js';
import { failureMessage, sendFailure } from '../errors/send-failure.js';
import type { Operations } from '../openapi/operations.js';
import type { Connection } from './connection.js';

/** What is known of a request that Express never saw. */
export interface Refusal {
  method: string | undefined;
  status: number;
  error: number;
  client: string | undefined;
}

/** Answers a failure below Express and ends the connection: nothing that follows on it can be trusted. */
export type Refuse = (failure: Failure, connection: Connection, response: ServerResponse | undefined) => void;

/**
 * @param observe called once for each refused request, unless it reached Express, which has its own observer.
 * @returns a function whose `response` is undefined if no head of a request was read.
 */
export function refuseBy(operations: Operations, observe: (refusal: Refusal) => void): Refuse {
  return (failure, connection, response) => {
    connection.ignoreRest();
    const { error } = failure;
    const { method, url } = response?.req ?? {};
    const status = operations.statusOf(method, url, error);
    const reachedExpress = response !== undefined && 'locals' in response && response.locals !== undefined;
    if (!reachedExpress) observe({ method, status, error, client: connection.socket.remoteAddress });
    if (response === undefined) {
      connection.end(failureMessage(failure));
      return;
    }
    response.setHeader('Connection', 'close');
    sendFailure(response, failure, status);
  };
}
