import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** A row of the table `plants`. */
@Entity('plants')
export class PlantEntity {
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
