import { loadConfigOfProcess } from '../config/config.js';
import { createLogger } from '../logging/logging.js';
import { embeddedDataSource, requireEmbeddedDatabase, runCommand, withDatabase } from './command.js';
import { copyPlants } from './copy.js';
import { createDataSource } from './data-source.js';
import { migrate } from './migrate.js';

const PROGRESS_MS = 1_000;
const IDS_TOLD = 10;

// `npm run db:copy`: copies from the embedded database in DATA_DIR to the server at DATABASE_URL. With `back`, the
// other way.
await runCommand('The plants were not copied', async () => {
  const isBack = process.argv[2] === 'back';
  const { database, operations } = loadConfigOfProcess();
  if (database.url === undefined) throw new Error('DATABASE_URL is missing; it names the server');
  if (!isBack) requireEmbeddedDatabase();
  const embedded = embeddedDataSource();
  const server = createDataSource(database, createLogger(operations));
  const [source, target] = isBack ? [server, embedded] : [embedded, server];
  await withDatabase(source, () =>
    withDatabase(target, async () => {
      for (const each of [source, target]) await migrate(each);
      let told = performance.now();
      const { total, stored, different, targetTotal } = await copyPlants(source, target, (done, all) => {
        if (performance.now() - told < PROGRESS_MS && done < all) return;
        told = performance.now();
        console.log(`${done} of ${all} plants`);
      });
      if (different.length > 0) {
        const ids = different.slice(0, IDS_TOLD).join(', ');
        throw new Error(
          `${different.length} of ${total} ids belong to different plants in the target, which were not changed: ${ids}${different.length > IDS_TOLD ? ', …' : ''}`,
        );
      }
      console.log(
        `Copied ${stored} plants; ${total - stored} were there before. All ${total} were compared and match the source. The target now has ${targetTotal}.`,
      );
    }),
  );
});
