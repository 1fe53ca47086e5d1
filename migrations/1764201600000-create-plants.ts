import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreatePlants1764201600000 implements MigrationInterface {
  name = 'CreatePlants1764201600000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE "plants" (
        "id" bigint NOT NULL,
        "name" text NOT NULL,
        "tag" text,
        "created_at" timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT "plants_pkey" PRIMARY KEY ("id")
      )
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE "plants"');
  }
}
