import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';
import type { StoredPlant } from './plant.columns.js';

/** A row of the table `plants`: a column for every member of a stored plant, and when it was created. */
@Entity('plants')
export class PlantEntity implements Record<keyof StoredPlant, unknown> {
  /** The driver returns a `bigint` as text, since a JavaScript number cannot hold it. */
  @PrimaryColumn({ type: 'bigint', primaryKeyConstraintName: 'plants_pkey' })
  id!: string;

  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text', nullable: true })
  tag!: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt!: Date;
}
