import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Failure } from '../errors/failure.js';
import { failureMessage, sendFailure } from '../errors/send-failure.js';
import { connectionOf } from './connection.js';

/** What is known of a request that Express never saw. */
export interface Refusal {
  method: string | undefined;
  status: number;
  error: number;
  client: string | undefined;
}

/**
 * Answers a failure below Express and ends the connection: nothing that follows on it can be trusted.
 *
 * @param to the connection's socket, and the response if the head of a request was read.
 */
export type Refuse = (
  failure: Failure,
  to: { socket: Socket; response?: ServerResponse | undefined },
) => void;

/**
 * @param statusOf gives the status of a failure.
 * @param observe called once for each refused request, unless it reached Express, which has its own observer.
 */
export function refuseBy(
  statusOf: (request: IncomingMessage, error: number) => number,
  observe: (refusal: Refusal) => void,
): Refuse {
  return (failure, { socket, response }) => {
    const connection = connectionOf(socket);
    connection?.ignoreRest();
    const request = response?.req;
    const status = request === undefined ? failure.error : statusOf(request, failure.error);
    const reachedExpress = response !== undefined && 'locals' in response && response.locals !== undefined;
    if (!reachedExpress) {
      const { error } = failure;
      observe({ method: request?.method, status, error, client: socket.remoteAddress });
    }
    if (response === undefined) {
      connection?.end(failureMessage(failure));
      return;
    }
    response.setHeader('Connection', 'close');
    sendFailure(response, failure, status);
  };
}
