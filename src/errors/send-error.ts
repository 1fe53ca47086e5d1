import type { ServerResponse } from 'node:http';
import { sendJson } from './send-json.js';

/** Seconds after which a client may try again what was answered 503. */
const RETRY_AFTER_SECONDS = '1';

/**
 * Answers with the contract's Error body, and nothing else.
 *
 * @param error the int32 that tells the kinds of failure apart: the number HTTP has for it, also where `status` is 400.
 * @param message one sentence for the client, without its final full stop.
 */
export function sendError(response: ServerResponse, status: number, error: number, message: string): void {
  if (status === 503) response.setHeader('Retry-After', RETRY_AFTER_SECONDS);
  sendJson(response, status, { error, message: `${message}.` });
}
