// Loaded before the service by --import, so that nothing is forced to the disk. Shows what fsync costs the embedded
// database.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setImmediate } from 'node:timers';

for (const name of ['fsync', 'fdatasync']) {
  fs[name] = (descriptor, done) => setImmediate(done, null);
  fs[`${name}Sync`] = () => undefined;
}
const handle = await fs.promises.open(new URL(import.meta.url));
for (const name of ['sync', 'datasync']) {
  Object.getPrototypeOf(handle)[name] = () => Promise.resolve();
}
await handle.close();
syncBuiltinESMExports();
