// What the rows of a store are.
using System;
using System.Collections.Generic;

namespace Cdd
{
    /// <summary>The dtype of a row's items, and the shape of a row: empty for rows of one item.</summary>
    public sealed class Layout
    {
        // The file format's codes; the unit of times is in the high byte. bool is no type that is the same memory
        // everywhere: it is read as bytes.
        private static readonly Dictionary<Type, uint> Codes = new Dictionary<Type, uint>
        {
            { typeof(sbyte), 2 }, { typeof(byte), 3 }, { typeof(short), 4 },
            { typeof(ushort), 5 }, { typeof(int), 6 }, { typeof(uint), 7 }, { typeof(long), 8 },
            { typeof(ulong), 9 }, { typeof(float), 12 }, { typeof(double), 13 },
        };
        private static readonly int[] Sizes = { 0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16, 8, 8 };

        private readonly int[] shape;

        /// <summary>The file format's code of the dtype.</summary>
        public uint Dtype { get; }
        /// <summary>The shape of a row.</summary>
        public IReadOnlyList<int> Shape => shape;
        /// <summary>Items of a row.</summary>
        public int RowItems { get; }
        /// <summary>Bytes of an item.</summary>
        public int ItemBytes { get; }

        /// <summary>Of items of a number's type: new Layout(typeof(float), 50, 3).</summary>
        public Layout(Type item, params int[] shape) : this(CodeOf(item), shape) { }

        /// <summary>Of a dtype by its code, for those that C# has no type of: bool, float16, complex, times.</summary>
        public Layout(uint dtype, params int[] shape)
        {
            if (shape == null) throw new ArgumentNullException(nameof(shape));
            if (shape.Length > 7) throw new ArgumentException("a row has at most 7 dimensions", nameof(shape));
            uint kind = dtype & 0xff;
            if (kind == 0 || kind >= Sizes.Length)
                throw new ArgumentException("dtype " + dtype + " is no code of a dtype", nameof(dtype));
            Dtype = dtype;
            ItemBytes = Sizes[kind];
            this.shape = (int[])shape.Clone();
            long items = 1;
            foreach (int size in shape)
            {
                if (size < 1) throw new ArgumentException("a dimension is " + size, nameof(shape));
                items = checked(items * size);
            }
            RowItems = checked((int)items);
        }

        internal unsafe Layout(NativeLayout* given) : this(given->Dtype, ShapeOf(given)) { }

        private static unsafe int[] ShapeOf(NativeLayout* given)
        {
            var shape = new int[given->Ndim];
            for (int i = 0; i < shape.Length; ++i) shape[i] = (int)given->Dims[i];
            return shape;
        }

        internal unsafe NativeLayout ToNative()
        {
            var made = new NativeLayout { Dtype = Dtype, Ndim = (uint)shape.Length };
            for (int i = 0; i < shape.Length; ++i) made.Dims[i] = (uint)shape[i];
            return made;
        }

        private static uint CodeOf(Type item)
        {
            if (item == null) throw new ArgumentNullException(nameof(item));
            uint code;
            if (!Codes.TryGetValue(item, out code))
                throw new ArgumentException("no store holds items of " + item, nameof(item));
            return code;
        }

        /// <summary>Throws where an array's items are not those of the store. Any type of the right size reads
        /// a dtype that C# has no type of.</summary>
        internal void CheckItem(Type item, int bytes)
        {
            uint code;
            bool known = Codes.TryGetValue(item, out code);
            bool same = known && code == Dtype;
            bool foreign = !Codes.ContainsValue(Dtype) && bytes == ItemBytes;
            if (!same && !foreign)
                throw new ArgumentException("the store holds items of dtype code " + Dtype + " of " + ItemBytes +
                                            " bytes, the array has " + item);
        }
    }

    internal static class Item<T> where T : struct
    {
        /// <summary>Bytes of an item in an array. ArgumentException for what is no number.</summary>
        public static readonly int Bytes = SizeOf();

        private static int SizeOf()
        {
            try { return Buffer.ByteLength(new T[1]); }
            catch (ArgumentException) { return 0; }  // which is the size of no item of a store
        }
    }
}
