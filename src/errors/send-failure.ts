import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Failure } from './failure.js';
import { sendJson } from './send-json.js';

/** How long a client should wait after a 503. */
const RETRY_AFTER_SECONDS = '1';

/**
 * Answers with the contract's Error body.
 *
 * @param status the HTTP status, if it differs from the failure's own number.
 */
export function sendFailure(response: ServerResponse, failure: Failure, status = failure.error): void {
  // For the request log.
  const { locals } = response as { locals?: Record<string, unknown> };
  if (locals !== undefined) locals.error = failure.error;
  sendJson(response, status, bodyOf(failure), headersOf(failure));
}

/** @returns the whole response as text, with `Connection: close`, for a connection on which no request was read. */
export function failureMessage(failure: Failure): string {
  const body = JSON.stringify(bodyOf(failure));
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...headersOf(failure),
    Date: new Date().toUTCString(),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${failure.error} ${STATUS_CODES[failure.error]}\r\n${lines.join('')}\r\n${body}`;
}

function headersOf({ error, headers }: Failure): Readonly<Record<string, string>> {
  return error === 503 ? { 'Retry-After': RETRY_AFTER_SECONDS, ...headers } : headers;
}

function bodyOf({ error, message }: Failure): { error: number; message: string } {
  return { error, message: `${message}.` };
}
