import { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';

/** Carries PostgreSQL's wire protocol to PGlite and back. Has the methods of `net.Socket` that `pg` calls. */
export class SessionStream extends Duplex {
  constructor(private readonly database: PGlite) {
    super();
  }

  connect(): this {
    // All sessions share one backend, one after the other. The backend does not notice the end of a session, so an open
    // transaction would swallow what the next session writes.
    this.database.exec('ROLLBACK; DEALLOCATE ALL').then(
      () => this.emit('connect'),
      (error: unknown) => this.destroy(error as Error),
    );
    return this;
  }

  readonly setNoDelay = (): this => this;
  readonly setKeepAlive = (): this => this;
  readonly ref = (): this => this;
  readonly unref = (): this => this;

  override _read(): void {
    // The answers are pushed as they arrive.
  }

  override _write(message: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    // PGlite blocks the event loop until the commit is on the disk. Requests that have arrived are read first, so that
    // they share the next commit.
    setImmediate(() => {
      this.database.execProtocolRaw(message).then(
        (answer) => {
          this.push(Buffer.from(answer));
          done();
        },
        (error: unknown) => done(error as Error),
      );
    });
  }

  override _writev(messages: { chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(messages.map(({ chunk }) => chunk)), 'binary', done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }
}
