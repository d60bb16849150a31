-- +goose Up
CREATE TABLE orders (
    id          uuid        PRIMARY KEY,
    customer_id uuid        NOT NULL,
    email       text        NOT NULL,
    total       bigint      NOT NULL, -- in the currency's smallest unit
    currency    text        NOT NULL,
    placed_at   timestamptz NOT NULL
);

CREATE TABLE order_lines (
    order_id uuid    NOT NULL REFERENCES orders,
    sku      text    NOT NULL,
    quantity integer NOT NULL CHECK (quantity > 0),
    price    bigint  NOT NULL, -- of one
    PRIMARY KEY (order_id, sku)
);

-- The inventory's. It knows of orders by their events alone.
CREATE TABLE stock (
    sku       text    PRIMARY KEY,
    available integer NOT NULL CHECK (available >= 0)
);

-- +goose Down
DROP TABLE stock;
DROP TABLE order_lines;
DROP TABLE orders;
