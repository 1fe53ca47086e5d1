import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Failure } from './failure.js';
import { sendJson } from './send-json.js';

/** Seconds after which a client may try again what was answered 503. */
const RETRY_AFTER_SECONDS = '1';

/**
 * Answers with the contract's Error body, and nothing else.
 *
 * @param status the HTTP status, if it differs from the failure's own number.
 */
export function sendFailure(response: ServerResponse, failure: Failure, status = failure.error): void {
  for (const [name, value] of Object.entries(headersOf(failure))) response.setHeader(name, value);
  // Express's place for what belongs to one response; the request log reads it there.
  const { locals } = response as { locals?: Record<string, unknown> };
  if (locals !== undefined) locals.error = failure.error;
  sendJson(response, status, bodyOf(failure));
}

/** @returns the whole answer as text, for a connection on which no request was read; it says that it is the last one. */
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
