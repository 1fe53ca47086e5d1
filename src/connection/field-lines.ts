import type { IncomingMessage } from 'node:http';

/**
 * @param name in lower case.
 * @returns how often the field was sent. Node keeps only the first line of most fields that must be sent once, and a
 *   gateway may have read another.
 */
export function timesSent({ rawHeaders }: IncomingMessage, name: string): number {
  let times = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) times++;
  }
  return times;
}
