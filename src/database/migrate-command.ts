import { runCommand, withDatabase } from './command.js';
import { migrate, revert } from './migrate.js';

// `npm run db:migrate` and `db:revert`, with the service's environment.
const isRevert = process.argv[2] === 'revert';
await runCommand(`The database was not ${isRevert ? 'reverted' : 'migrated'}`, async () => {
  const { dataSource } = await import('./cli-data-source.js');
  await withDatabase(dataSource, async () => {
    if (isRevert) {
      const name = await revert(dataSource);
      console.log(name === undefined ? 'Nothing to revert.' : `Reverted: ${name}`);
    } else {
      const names = await migrate(dataSource);
      console.log(names.length === 0 ? 'Nothing to migrate.' : `Migrated: ${names.join(', ')}`);
    }
  });
});
